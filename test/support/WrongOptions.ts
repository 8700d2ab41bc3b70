import { Either, ParseResult } from "effect"

/** What is wrong with options that an adapter was to decode, as `option key: message`. */
export const wrongOptions = (decoded: Either.Either<unknown, ParseResult.ParseError>): string =>
  Either.match(decoded, {
    onLeft: (error) =>
      ParseResult.ArrayFormatter.formatErrorSync(error)
        .map(({ message, path }) => `option ${path.join(".")}: ${message}`)
        .join("; "),
    onRight: () => ""
  })
