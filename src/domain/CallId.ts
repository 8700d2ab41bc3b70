/** Between a call's id and its signature. */
export const callIdMark = "~sig~"
const longestSignature = 16_384

export interface CallId {
  readonly id: string
  readonly signature?: string
}

/**
 * What a client gets as the id of a tool call. The convention has no place for what a provider wants back with a call,
 * so it travels in the id, which clients hand back as it is. A signature of more than 16384 characters is left out.
 */
export const callIdOnWire = (id: string, signature: string | undefined): string =>
  signature === undefined || signature.length > longestSignature ? id : `${id}${callIdMark}${signature}`

/** The id as any provider may see it, and the signature that a client handed back in it. */
export const readCallId = (onWire: string): CallId => {
  const at = onWire.indexOf(callIdMark)
  return at < 1 ? { id: onWire } : { id: onWire.slice(0, at), signature: onWire.slice(at + callIdMark.length) }
}
