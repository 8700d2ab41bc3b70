import { jsonPieces } from "../../src/services/runtime/Pieces.ts"

/** A body as its host reads it, for one that may have bytes to be encoded in it. */
export const asSent = (body: unknown): unknown =>
  JSON.parse(Buffer.concat([...jsonPieces(body, "a mark that nobody can guess")]).toString("utf8"))
