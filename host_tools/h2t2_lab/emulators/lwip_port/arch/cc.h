// How lwIP is compiled here: with the types of the C library, without asserts.
#include <sys/time.h>
#define LWIP_PLATFORM_DIAG(x)
#define LWIP_PLATFORM_ASSERT(x) do { } while (0)
#define LWIP_NO_CTYPE_H 1
