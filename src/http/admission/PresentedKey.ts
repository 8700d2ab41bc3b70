import { Option, Redacted } from "effect"

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const bearer = /^bearer\s+(.*)$/i

export const presentedKey = (headers: Headers): Option.Option<Redacted.Redacted> => {
  const { authorization, "x-api-key": plain } = headers
  const token = typeof authorization === "string" ? bearer.exec(authorization)?.[1] : undefined
  const key = token ?? (typeof plain === "string" ? plain : undefined)
  return key === undefined ? Option.none() : Option.some(Redacted.make(key.trim()))
}
