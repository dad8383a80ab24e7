/* The drop-in: the library's public functions under the names that programs already call.
 *
 * They are the very functions of dispatch/public.S, assembled a second time, but for the smallest copies. (Aliases
 * beside the library's own names would be the same code, but each drop-in would then also answer for wherry_memcpy in a
 * program that is linked with the library.)
 *
 * They are plain functions: the loader complains about an IFUNC memcpy in a preloaded object for each program. They
 * have no version, so that a call of any version finds them, as memcpy has two in glibc. They hold when a program's
 * first calls come before this object has been relocated, from an IFUNC resolver of another: nothing on the way from
 * them to the baseline routine goes through a relocated word, and the link leaves no symbol undefined, libc's neither.
 */
#define PUBLIC(name) name
#define ONE_BYTE_APART 1
#define SECOND_HALF_IN_PLACE 1
#include "dispatch/public.S"
#include "relatives.S"
