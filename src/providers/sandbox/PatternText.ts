import type { Pattern } from "./Pattern.ts"

/** Work left before the answer may be approximate; shared by everything that fills one schema. */
export interface Budget {
  steps: number
}

/** Where `pattern` can end in `text` when it starts at one of `from`. */
const ends = (
  pattern: Pattern,
  text: ReadonlyArray<string>,
  from: ReadonlySet<number>,
  budget: Budget
): Set<number> => {
  budget.steps -= 1 + (from.size >> 3)
  switch (pattern.type) {
    case "start":
      return new Set([...from].filter((at) => at === 0))
    case "end":
      return new Set([...from].filter((at) => at === text.length))
    case "one": {
      const accepted = (at: number): boolean => {
        const character = text[at]
        return character !== undefined && pattern.accepts(character)
      }
      return new Set([...from].filter(accepted).map((at) => at + 1))
    }
    case "all":
      return pattern.parts.reduce((at, part) => (at.size === 0 ? at : ends(part, text, at, budget)), new Set(from))
    case "either":
      return new Set(pattern.options.flatMap((option) => [...ends(option, text, from, budget)]))
    default:
      return repeated(pattern, text, from, budget)
  }
}

const repeated = (
  { max, min, of }: Extract<Pattern, { type: "repeat" }>,
  text: ReadonlyArray<string>,
  from: ReadonlySet<number>,
  budget: Budget
): Set<number> => {
  let now = new Set(from)
  // After as many rounds as there are characters every further one can only match nothing.
  const rounds = Math.min(min, text.length + 1)
  for (let round = 0; round < rounds && now.size > 0 && budget.steps > 0; round++) now = ends(of, text, now, budget)
  const reached = new Set(now)
  for (let round = min; round < max && now.size > 0 && budget.steps > 0; round++) {
    now = new Set([...ends(of, text, now, budget)].filter((at) => !reached.has(at)))
    for (const at of now) reached.add(at)
  }
  return reached
}

/** Whether `text` has a match in it; true as well when the budget ends before that is known. */
export const matches = (pattern: Pattern, text: string, budget: Budget): boolean => {
  const characters = Array.from(text)
  const found = ends(pattern, characters, new Set(Array.from({ length: characters.length + 1 }, (_, at) => at)), budget)
  return found.size > 0 || budget.steps <= 0
}

const pool = Array.from(
  "abcdefghijklmnopqrstuvwxyz1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZ-_ .,:/@#+=!?&*()[]{}<>$%^'\"`~|;\\\t\n"
)
const farPlanes = 0x3000

interface Writing {
  readonly out: Array<string>
  readonly longest: number
  readonly variant: number
  readonly hints: ReadonlyArray<string>
  extra: number
}

const write = (pattern: Pattern, writing: Writing): void => {
  const { hints, longest, out, variant } = writing
  switch (pattern.type) {
    case "one": {
      const hint = hints[out.length % Math.max(1, hints.length)] ?? "a"
      const liked = [hint, hint.toLowerCase(), hint.toUpperCase()].find(
        (it) => Array.from(it).length === 1 && pattern.accepts(it)
      )
      const plain = liked ?? pool.filter(pattern.accepts)
      if (typeof plain === "string") out.push(plain)
      else
        out.push(plain[(out.length + variant) % Math.max(1, plain.length)] ?? pattern.example ?? rare(pattern.accepts))
      return
    }
    case "all":
      for (const part of pattern.parts) write(part, writing)
      return
    case "either": {
      const option = pattern.options[variant % pattern.options.length]
      if (option !== undefined) write(option, writing)
      return
    }
    case "repeat":
      for (let count = 0; count < pattern.max && out.length < longest; count++) {
        if (count >= pattern.min && writing.extra <= 0) return
        const before = out.length
        write(pattern.of, writing)
        if (out.length === before) return
        if (count >= pattern.min) writing.extra -= out.length - before
      }
      return
    case "start":
    case "end":
      return
  }
}

const rare = (accepts: (character: string) => boolean): string => {
  for (let point = 0; point < farPlanes; point++) {
    const character = String.fromCodePoint(point)
    if (accepts(character)) return character
  }
  return ""
}

/**
 * A text that matches by the way it is made, of `min` to `max` characters where the pattern leaves the room, with
 * the letters of `hint` wherever they fit. Different variants give different texts where that is possible.
 */
export const textOf = (
  pattern: Pattern,
  { hint, max, min, variant }: { hint: string; min: number; max: number; variant: number }
): string => {
  const natural = Array.from(hint).slice(0, 8)
  const hints = natural.map((_, at) => natural[(at + variant) % natural.length] ?? "a")
  const attempt = (extra: number): Array<string> => {
    const writing: Writing = { out: [], longest: max, variant, hints, extra }
    write(pattern, writing)
    return writing.out
  }
  const least = attempt(0)
  const wanted = Math.max(min, Math.min(natural.length, max)) - least.length
  const grown = wanted > 0 ? attempt(wanted) : least
  const text = (grown.length > max ? least : grown).join("")
  // Only a pattern without an end mark takes this padding; the caller checks.
  return text + "a".repeat(Math.max(0, min - Array.from(text).length))
}
