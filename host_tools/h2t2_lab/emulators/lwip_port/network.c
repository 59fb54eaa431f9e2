// The network of the lwip port: one SLIP interface on a file descriptor, 10.0.2.15 as slirp gives it to its guest.
//
// H2T2_SLIP: the descriptor's number; without it there is no network. H2T2_DNS: "ADDRESS:PORT" of the DNS server that lwIP asks.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "py/mphal.h"
#include "py/runtime.h"

#include "lwip/dns.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/sio.h"
#include "lwip/timeouts.h"
#include "netif/slipif.h"

#define LONGEST_WAIT_MS (20) // lwIP's timers are due every 64 ms on a Pico W

uint16_t network_dns_port = 53;

static int line = -1;
static struct netif slip;
static bool polling;
static bool heard; // something since the last wait: what a chip's WFE instruction remembers

void network_poll(void) {
    if (polling) {
        return;
    }
    polling = true;
    if (line >= 0) {
        slipif_poll(&slip);
    }
    sys_check_timeouts();
    polling = false;
}

// Wait for the line, a signal, or the end of the time.
void network_wait(long timeout_ms) {
    if (heard) {
        heard = false;
        return;
    }
    struct pollfd wanted = { .fd = line, .events = POLLIN };
    if (timeout_ms < 0 || timeout_ms > LONGEST_WAIT_MS) {
        timeout_ms = LONGEST_WAIT_MS;
    }
    poll(&wanted, line >= 0, timeout_ms);
}

u32_t sys_now(void) {
    return mp_hal_ticks_ms();
}

u32_t network_random(void) {
    u32_t value = 0;
    if (getrandom(&value, sizeof(value), 0) < 0) {
        abort();
    }
    return value;
}

sio_fd_t sio_open(u8_t number) {
    return (sio_fd_t)&line;
}

// Bytes gather until a packet ends. A packet that the line does not take whole is lost, as on any network.
void sio_send(u8_t byte, sio_fd_t fd) {
    static u8_t packet[4096];
    static size_t length;
    if (length < sizeof(packet)) {
        packet[length++] = byte;
    }
    if (byte == 0xc0 && length > 1) {
        size_t sent = 0;
        while (sent < length) {
            ssize_t n = write(line, packet + sent, length - sent);
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                break;
            }
            sent += n;
        }
        length = 0;
    }
}

u32_t sio_tryread(sio_fd_t fd, u8_t *data, u32_t size) {
    static u8_t buffer[4096];
    static size_t start, end;
    if (start == end) {
        ssize_t n = read(line, buffer, sizeof(buffer));
        start = 0;
        end = n > 0 ? n : 0;
        heard = heard || n > 0;
    }
    u32_t n = size < end - start ? size : end - start;
    memcpy(data, buffer + start, n);
    start += n;
    return n;
}

__attribute__((constructor)) static void network_start(void) {
    const char *number = getenv("H2T2_SLIP");
    const char *server = getenv("H2T2_DNS");
    lwip_init();
    if (number == NULL) {
        return;
    }
    line = atoi(number);
    ip4_addr_t address, mask, gateway;
    IP4_ADDR(&address, 10, 0, 2, 15);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    IP4_ADDR(&gateway, 10, 0, 2, 2);
    if (netif_add(&slip, &address, &mask, &gateway, NULL, slipif_init, ip_input) == NULL) {
        fprintf(stderr, "lwIP has no room for its interface\n");
        abort();
    }
    netif_set_default(&slip);
    netif_set_up(&slip);
    netif_set_link_up(&slip);
    char text[32];
    ip_addr_t dns;
    if (server != NULL && sscanf(server, "%31[^:]:%hu", text, &network_dns_port) >= 1 && ipaddr_aton(text, &dns)) {
        dns_setserver(0, &dns);
    }
}

// What mbedtls needs from a board.
int mbedtls_hardware_poll(void *data, unsigned char *output, size_t len, size_t *olen) {
    ssize_t n = getrandom(output, len, 0);
    *olen = n > 0 ? n : 0;
    return n < 0;
}
