import { Config, ConfigError, Duration, Either } from "effect"
import { findQuotes } from "../domain/TextDecoding.ts"
import * as Kinds from "./SettingKinds.ts"

export interface Variable<A> extends Config.Config<A> {
  readonly variable: string
  readonly shown: string
  readonly about: string
}

export const variable = <A, const Default>(
  name: string,
  { accepts, parse }: Kinds.Kind<A>,
  about: string,
  fallback: Default,
  shown = String(fallback ?? "")
): Variable<A | Default> =>
  Object.assign(
    Config.string(name).pipe(
      Config.mapOrFail((text) => {
        const value = text.trim()
        const problem = findQuotes(value)
        const read = problem === undefined ? parse(value) : undefined
        return Either.fromNullable(read, () => ConfigError.InvalidData([], problem ?? `must be ${accepts}`))
      }),
      Config.withDefault(fallback)
    ),
    { variable: name, shown, about }
  )

export const optional = <A>(name: string, kind: Kinds.Kind<A>, about: string, shown = "") =>
  variable(name, kind, about, undefined, shown)

export const seconds = (name: string, fallback: number, about: string) =>
  variable(name, Kinds.seconds, about, Duration.seconds(fallback), String(fallback))
