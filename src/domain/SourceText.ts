/** Texts of code samples, for the documentation and the console. */

/** Indents all lines after the first one. */
export const indent = (text: string, by: string): string => text.replaceAll("\n", `\n${by}`)

/** Returns one word of a shell. */
export const shellQuote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** Converts a value to Python. Replacing `true`, `false` and `null` at line ends is safe, because strings end with a quote. */
export const pythonLiteral = (value: unknown): string =>
  JSON.stringify(value, null, 4).replace(
    /\b(true|false|null)(?=,?$)/gm,
    (literal) => ({ true: "True", false: "False" })[literal] ?? "None"
  )

/** Converts a value to JavaScript. */
export const scriptLiteral = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( *)"([A-Za-z_]\w*)":/gm, "$1$2:")
