// Division and products of 64 bits for a processor without them: Debian's libgcc for it leaves these functions out.
static unsigned divide(unsigned a, unsigned b, unsigned *remainder) {
    unsigned quotient = 0;
    unsigned carried = 0;
    for (int bit = 31; bit >= 0; bit--) {
        carried = carried << 1 | (a >> bit & 1);
        if (carried >= b) {
            carried -= b;
            quotient |= 1u << bit;
        }
    }
    *remainder = carried;
    return quotient;
}

static unsigned magnitude(int a) {
    return a < 0 ? -(unsigned)a : (unsigned)a;
}

unsigned __udivsi3(unsigned a, unsigned b) {
    unsigned remainder;
    return divide(a, b, &remainder);
}

unsigned __umodsi3(unsigned a, unsigned b) {
    unsigned remainder;
    divide(a, b, &remainder);
    return remainder;
}

int __divsi3(int a, int b) {
    unsigned remainder;
    unsigned quotient = divide(magnitude(a), magnitude(b), &remainder);
    return (a ^ b) < 0 ? -quotient : quotient;
}

int __modsi3(int a, int b) {
    unsigned remainder;
    divide(magnitude(a), magnitude(b), &remainder);
    return a < 0 ? -remainder : remainder;
}

// Debian 13's compiler calls it.
unsigned long long __umulsidi3(unsigned a, unsigned b) {
    unsigned low = (a & 0xffff) * (b & 0xffff);
    unsigned middle = (a >> 16) * (b & 0xffff) + (low >> 16);
    unsigned other = (a & 0xffff) * (b >> 16) + (middle & 0xffff);
    unsigned high = (a >> 16) * (b >> 16) + (middle >> 16) + (other >> 16);
    return (unsigned long long)high << 32 | (unsigned)(other << 16 | (low & 0xffff));
}
