const longest = 100

/** A model's name as messages repeat it: in backticks, cut at 100 UTF-16 units, never inside a surrogate pair. */
export const quoteModel = (name: string): string => {
  if (name.length <= longest) return `\`${name}\``
  const end = /[\uD800-\uDBFF]/.test(name.charAt(longest - 1)) ? longest - 1 : longest
  return `\`${name.slice(0, end)}…\``
}
