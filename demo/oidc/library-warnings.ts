// oidc-provider warns at each start that its storage is in memory, and of Node.js 20. Both are intended here. The module has
// no setting for it, and is imported after this one.
const { warn } = console
console.warn = (text: unknown, ...values: unknown[]) => {
  if (!String(text).includes('oidc-provider WARNING: ')) warn(text, ...values)
}
