/** What a prompt offers to fill values with, so that an answer visibly belongs to its question. */
export interface Words {
  /** Never empty: quoted phrases first, then names, then longer words. */
  readonly topics: ReadonlyArray<string>
  readonly numbers: ReadonlyArray<number>
  /** Whether the prompt says this, as a word of its own. */
  readonly mention: (text: string) => boolean
}

const maxRead = 4_000
const maxMention = 100

const topicsIn = (text: string): ReadonlyArray<string> => {
  const quoted = [...text.matchAll(/["\u201c\xab`]([^"\u201c\u201d\xab\xbb`\n]{1,60})["\u201d\xbb`]/gu)].map(
    ([, phrase = ""]) => phrase.trim()
  )
  // A capital only tells a name where it does not begin a sentence.
  const names = [...text.matchAll(/(?<=[\p{L}\p{N},;:] )\p{Lu}[\p{L}\p{M}]+(?: \p{Lu}[\p{L}\p{M}]+){0,3}/gu)].map(
    ([name]) => name
  )
  const words = [...text.matchAll(/[\p{L}\p{M}]{5,24}/gu)].map(([word]) => word)
  const found = [...new Set([...quoted, ...names, ...words].filter((topic) => topic !== ""))]
  return found.length === 0 ? ["sandbox"] : found.slice(0, 50)
}

const wordCharacter = /[\p{L}\p{N}_]/u

export const wordsOf = (prompt: string): Words => {
  const text = prompt.slice(0, maxRead)
  const lower = text.toLowerCase()
  return {
    topics: topicsIn(text),
    numbers: [...text.matchAll(/(?<![\p{L}\p{N}.,-])\d{1,9}(?![\p{L}\p{N}])/gu)].slice(0, 50).map(Number),
    mention: (wanted) => {
      if (wanted === "" || wanted.length > maxMention) return false
      const needle = wanted.toLowerCase()
      for (let at = lower.indexOf(needle); at !== -1; at = lower.indexOf(needle, at + 1)) {
        const [before = " ", after = " "] = [lower[at - 1], lower[at + needle.length]]
        if (!wordCharacter.test(before) && !wordCharacter.test(after)) return true
      }
      return false
    }
  }
}
