/** From the prompt, so that an answer visibly belongs to its question. */
export interface Words {
  /** Never empty: quoted phrases, then names, then longer words. */
  readonly topics: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
  readonly mention: (text: string) => boolean
}

const maxRead = 4_000
const maxMention = 100
const maxKept = 50

const normalize = (text: string): string =>
  ` ${text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_]+/gu, " ")
    .trim()} `

export const wordsOf = (prompt: string): Words => {
  const text = prompt.slice(0, maxRead)
  const [lower, normalized] = [text.toLowerCase(), normalize(text)]
  const quoted = Array.from(
    text.matchAll(/["\u201c\xab`]([^"\u201c\u201d\xab\xbb`\n]{1,60})["\u201d\xbb`]/gu),
    ([, phrase = ""]) => phrase.trim()
  )
  // A capital only marks a name where it does not begin a sentence.
  const names = text.match(/(?<=[\p{L}\p{N},;:] )\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu) ?? []
  const words = text.match(/[\p{L}\p{M}]{5,24}/gu) ?? []
  const topics = [...new Set([...quoted, ...names, ...words])].filter((topic) => topic !== "").slice(0, maxKept)
  const numbers = text.match(/(?<![\p{L}\p{N}.,-])\d{1,9}(?![\p{L}\p{N}])/gu) ?? []
  return {
    topics: topics.length === 0 ? ["sandbox"] : topics,
    numbers: numbers.slice(0, maxKept).map(Number),
    mention: (wanted) => {
      if (wanted.length > maxMention || !lower.includes(wanted.toLowerCase())) return false
      const words = normalize(wanted)
      return words !== "  " && normalized.includes(words)
    }
  }
}
