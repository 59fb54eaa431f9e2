s => { if (s == null) return '?';
    if (s < 0) return 'no';
    for (const [size, unit] of [[86400, 'd'], [3600, 'h'], [60, 'min']]) if (s >= size) return s / size + ' ' + unit;
    return s + ' s'; }
