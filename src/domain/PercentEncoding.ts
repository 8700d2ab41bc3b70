/** Encodes a `%` that begins no escape, as a password may have it. */
export const encodeStrayPercents = (url: string): string => url.replaceAll(/%(?![\da-f]{2})/gi, "%25")

/** Whether the escapes of a part of a URL are UTF-8. */
export const isDecodable = (part: string): boolean => {
  try {
    decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}
