/** The relay's metrics by name. Event-loop delays are those since the last call. */
export const readMetrics = async (port: number): Promise<(name: string) => number> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return (name) => Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(text)?.[1] ?? Number.NaN)
}
