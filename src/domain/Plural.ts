/** Returns the form for a count: `request` for 1, else `requests`; `several` where the plural is not made with an s. */
export const nounFor = (count: number, one: string, several = `${one}s`): string => (count === 1 ? one : several)

/** Returns `1 request` or `2 requests`; a verb may follow the noun in both forms: `request is`, `requests are`. */
export const pluralize = (count: number, one: string, several?: string): string =>
  `${count} ${nounFor(count, one, several)}`
