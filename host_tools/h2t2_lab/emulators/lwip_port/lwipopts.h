// The options of MicroPython's rp2 port (a Pico W), on a SLIP line and on a machine of 64 bits.
#include <stdint.h>
#define LWIP_IPV4 1
#define LWIP_IPV6 1
#define LWIP_ND6_NUM_DESTINATIONS 4
#define LWIP_ND6_QUEUEING 0
#define LWIP_RAND() network_random()
#include "extmod/lwip-include/lwipopts_common.h"

// lwIP draws its first TCP port from 0xc000 to 0xffff and takes the one after it. After 0xffff this is port 0, which refuses the
// connection with ENOBUFS: on a Pico W one start in 16,384, which tries again within half a second. Here 0xffff is never drawn.
#define TCP_LOCAL_PORT_RANGE_START 0xc000
#define TCP_LOCAL_PORT_RANGE_END 0xffff
#define TCP_ENSURE_LOCAL_PORT_RANGE(port) (0xc000 + (port) % 0x3fff)

#define LWIP_HAVE_SLIPIF 1
#undef MEM_ALIGNMENT
#define MEM_ALIGNMENT 8

// Structures hold pointers of 8 bytes: as much room for packets as on the Pico W.
#undef MEM_SIZE
#define MEM_SIZE (10000)

#define DNS_SERVER_PORT network_dns_port
extern uint16_t network_dns_port;
extern uint32_t network_random(void);
