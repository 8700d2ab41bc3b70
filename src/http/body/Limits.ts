import { Context } from "effect"

export class Limits extends Context.Tag("gateway/http/Limits")<
  Limits,
  { readonly chatBodyBytes: number; readonly mediaBodyBytes: number }
>() {}
