import { Context } from "effect"

/** Largest accepted request bodies, in bytes. */
export class Limits extends Context.Tag("gateway/http/Limits")<
  Limits,
  { readonly chatBodyBytes: number; readonly mediaBodyBytes: number }
>() {}
