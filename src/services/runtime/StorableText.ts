/** PostgreSQL takes neither NUL nor half a surrogate pair, and a client's or provider's text may hold either. */
export const storable = (text: string): string => text.replace(/[\p{Cc}\p{Cs}]/gu, "?")
