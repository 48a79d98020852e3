// Runs before the first paint, so that nobody who chose a theme sees the other one flash by.
const theme = localStorage.getItem('gatehouse-theme')
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
