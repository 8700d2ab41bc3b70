/** Percent-encodes each `%` that begins no escape, because passwords may contain one. */
export const encodeStrayPercents = (url: string): string => url.replaceAll(/%(?![\da-f]{2})/gi, "%25")

/** Whether the percent-encoded bytes of a URL part are UTF-8. */
export const isDecodable = (part: string): boolean => {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

/** Completes "DATABASE_URL must be …". Does not quote the value, because any part of it may be the password. */
export const databaseUrlForm =
  "a postgres:// or postgresql:// URL; percent-encode characters such as @ : / ? # % in the user name and the password (# is %23)"

/** Adds a host to a URL with a user and a socket directory, because `URL` requires one after a user. */
const withHost = (url: string): string => url.replace(/^(\w+:\/\/[^/?]*@)(?=\/[^?]*\?(?:.*&)?host=)/, "$1localhost")

/**
 * Returns the URL with stray `%` and spaces percent-encoded, or undefined if it is ambiguous. A raw `/`, `?` or `#` in the
 * password ends the host early: part of the password would be used, and printed, as the host.
 */
export const normalizeDatabaseUrl = (value: string): string | undefined => {
  const encoded = withHost(encodeStrayPercents(value))
  if (!/^postgres(?:ql)?:\/\/./.test(encoded) || !URL.canParse(encoded)) return undefined
  const { href, password, pathname, search, username } = new URL(encoded)
  if (encoded.includes("#") || pathname.includes("@")) return undefined
  if (username === "" && search.includes("@")) return undefined
  return [username, password, pathname].every(isDecodable) ? href : undefined
}
