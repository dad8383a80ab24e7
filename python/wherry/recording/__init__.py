"""`wherry record`: runs a program with the recorder preloaded and makes a mix of what its processes left."""
