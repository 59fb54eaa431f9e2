// Preloaded into slirp: its connections send at once, as a network does that has no Nagle's algorithm in its middle.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    static int (*real)(int, const struct sockaddr *, socklen_t);
    int on = 1;
    if (!real) {
        real = dlsym(RTLD_NEXT, "connect");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); // refused for other sockets
    return real(fd, address, length);
}
