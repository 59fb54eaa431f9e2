(v, row) => { if (v == null) return '–';
    const text = x => x.toLocaleString('en', {maximumFractionDigits: 6}), interval = row.CHOICE_interval;
    return (v < 0 ? '−' : '') + text(Math.abs(v)) + (interval ? ' ± ' + text(interval) : ''); }
