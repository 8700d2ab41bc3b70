import type { Page } from "./Markdown.ts"

const maxWords = 30

/** Inverted or archaic phrases, and the plain word for each. */
const patterns: ReadonlyArray<readonly [pattern: RegExp, advice: string]> = [
  [/^Of\b/, "put the subject first"],
  [/\b(?:tells?|told) of\b/, "reports"],
  [/\b(?:is|are|was|were) told\b/, "use the active voice"],
  [/\b(?:is|are|was|were) over\b(?! (?:\d|the\b|an?\b|its?\b))/, "finished, or above"],
  [/\bas ever\b/, "still"],
  [/\ball the same\b/, "still"],
  [/\b(?:is|are|was|were|wants?) no more\b(?! than\b)/, "ended"],
  [/\b(?:gives?|gave|given|giving) (?:\w+ )?back\b/, "refund, release or return"],
  [/\bby itself\b/, "automatically"],
  [/\bwhere (?:there|none|nothing)\b/, "if"],
  [/\bif left out\b/, "the default is"],
  [/; null\b/, "write a sentence: null means"]
]

interface Block {
  readonly text: string
  readonly isTable: boolean
}

/** Paragraphs, headings, list items and cells, in which code is the word `code` and a link is its text. */
const blocksOf = ({ text }: Page): ReadonlyArray<Block> => {
  const prose = text
    .replaceAll(/^```.*?^```$/gms, "")
    .replaceAll(/<!--.*?-->/gs, "")
    .replaceAll(/(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)/gs, "code")
    .replaceAll(/!?\[([^\]]*)\]\([^)\s]+\)/g, "$1")
    .replaceAll(/<(https?:[^>]+)>/g, "address")
    .replaceAll(/[*_]{1,2}(?=\S)(.+?)(?<=\S)[*_]{1,2}/g, "$1")
  return prose.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=[|#])|(?<=^#.*)\n/m).flatMap((block) => {
    const isTable = block.startsWith("|")
    const parts = isTable ? block.split("|") : [block.replace(/^\s*(?:[-*]|\d+\.|#+) /, "")]
    return parts.map((part) => ({ text: part.replaceAll(/\s+/g, " ").trim(), isTable }))
  })
}

interface Finding {
  readonly sentence: string
  readonly problem: string
}

/** Every sentence of a page that breaks a rule. */
export const findingsIn = (page: Page): ReadonlyArray<Finding> =>
  blocksOf(page).flatMap(({ isTable, text }) =>
    text.split(/(?<=[.!?]["')]?) +(?=["'(]?[A-Z\d]|code\b)/).flatMap((sentence) => {
      const words = sentence.split(" ").filter((word) => /\w/.test(word)).length
      const match = patterns.find(([pattern]) => pattern.test(sentence))
      if (match !== undefined) return [{ sentence, problem: `${match[0].source}: ${match[1]}` }]
      return !isTable && words > maxWords ? [{ sentence, problem: `${words} words` }] : []
    })
  )
