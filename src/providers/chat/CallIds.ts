import { createHash } from "node:crypto"

/** An id of at most so many characters. A call and its result keep one id, also where another vendor made it longer. */
export const fitCallId = (id: string, longest: number): string =>
  id.length <= longest ? id : `call_${createHash("sha256").update(id).digest("base64url")}`.slice(0, longest)
