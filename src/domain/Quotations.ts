const isMark = (char: string | undefined) => char === '"' || char === "'" || char === "`"
const isWord = (char: string | undefined): boolean => char !== undefined && /\w/.test(char)
const isName = (text: string): boolean => /^[\w.\-[\]/:*]*$/.test(text)

/** Where the quotation that opens at `start` ends: a quoted text may hold marks of its own, escaped or not. */
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

/** Vendors quote what they refuse. Replaces quoted text, which may be part of the prompt, with `…`; keeps quoted names. */
export const withoutQuotations = (text: string): string => {
  let kept = ""
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const isTypographic = text[at] === "“"
    if (!isTypographic && (!isMark(text[at]) || isWord(text[at - 1]))) continue
    const typographic = text.indexOf("”", at)
    const end = isTypographic ? (typographic === -1 ? text.length : typographic) : closingOf(text, at)
    if (!isName(text.slice(at + 1, end))) {
      kept += `${text.slice(from, at + 1)}…`
      from = end
      if (end === text.length) kept += isTypographic ? "”" : text[at]
    }
    at = end
  }
  return kept + text.slice(from)
}
