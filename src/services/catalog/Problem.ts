import { Data } from "effect"

/** `key` is a path such as `models[3].pricing`. */
export interface Problem {
  readonly file: string
  readonly line: number
  readonly key: string
  readonly message: string
}

/** `catalog.yaml:41: models[3].pricing.prompt_per_1m_usd: is missing` */
const render = ({ file, line, key, message }: Problem): string =>
  key === "" ? `${file}:${line}: ${message}` : `${file}:${line}: ${key}: ${message}`

export class NothingToServe extends Data.TaggedError("NothingToServe")<{ readonly message: string }> {}

/** In the order of lines; the message has one line per problem. */
export class CatalogInvalid extends Data.TaggedError("CatalogInvalid")<{
  readonly problems: ReadonlyArray<Problem>
}> {
  override get message(): string {
    return this.problems.map(render).join("\n")
  }
}
