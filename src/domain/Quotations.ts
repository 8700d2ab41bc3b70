const isMark = (char: string | undefined) => char === '"' || char === "'" || char === "`"
const isWord = (char: string | undefined): boolean => char !== undefined && /\w/.test(char)
const isName = (text: string): boolean => /^[\w.\-[\]/:*]*$/.test(text)

/** Returns the position of the quotation mark that closes the one at `start`. The quoted text may contain quotations. */
const closingOf = (text: string, start: number): number => {
  let depth = 1
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] !== text[start]) continue
    if (!isWord(text[at + 1])) depth--
    else if (!isWord(text[at - 1])) depth++
    if (depth === 0) return at
  }
  return text.length
}

/**
 * Replaces quoted text with `…`, but not quoted names. Providers quote the values that they reject, which may be prompts.
 */
export const redactQuotations = (text: string): string => {
  let output = ""
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const isTypographic = text[at] === "“"
    if (!isTypographic && (!isMark(text[at]) || isWord(text[at - 1]))) continue
    const typographicEnd = text.indexOf("”", at)
    const end = isTypographic ? (typographicEnd === -1 ? text.length : typographicEnd) : closingOf(text, at)
    if (!isName(text.slice(at + 1, end))) {
      output += `${text.slice(from, at + 1)}…`
      from = end
      if (end === text.length) output += isTypographic ? "”" : text[at]
    }
    at = end
  }
  return output + text.slice(from)
}
