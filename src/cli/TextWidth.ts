// By hand: string-width would save eight lines, for four packages.
const ascii = /^[ -~]*$/
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const invisible = /^\p{M}+$/u

const segmenter = new Intl.Segmenter()

const graphemes = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment)

const graphemeWidth = (grapheme: string) => (invisible.test(grapheme) ? 0 : wide.test(grapheme) ? 2 : 1)

/** Columns of a terminal that a text without control characters takes. */
export const textWidth = (text: string): number =>
  ascii.test(text) ? text.length : graphemes(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0)

/** What does not fit is replaced by an ellipsis. */
export const truncate = (text: string, width: number): string => {
  if (textWidth(text) <= width) return text
  let kept = ""
  let left = width - 1
  for (const grapheme of graphemes(text)) {
    left -= graphemeWidth(grapheme)
    if (left < 0) break
    kept += grapheme
  }
  return `${kept}…`
}

export const padEnd = (text: string, width: number) => text + " ".repeat(Math.max(0, width - textWidth(text)))
export const padStart = (text: string, width: number) => " ".repeat(Math.max(0, width - textWidth(text))) + text
