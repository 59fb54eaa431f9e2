(v, row) => { if (v == null) return '–';
    const text = x => x.toLocaleString('en', {maximumFractionDigits: 6});
    return (v > 0 ? '+' : v < 0 ? '−' : '') + text(Math.abs(v)) + (row.error ? ' ± ' + text(row.error) : ''); }
