# idea: arrays, buffers, compression, digests, collections under GC
# needs: java=default-jdk-headless, javac=default-jdk-headless
java -Xmx300m -Xshare:auto "$TRIALS/T.java"
