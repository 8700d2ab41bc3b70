import { type Args, Command } from "@effect/cli"
import { Effect } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import type { Operation } from "../services/admin/Operation.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, type Output, print, record, toJson, warn } from "./Output.ts"

/** With `--json` prints one document and nothing else. */
export const make = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (given: Command.Command.ParseConfigValue<Config>) => Effect.Effect<Output, E, R>
) =>
  Command.make(name, { given: config, json: Inputs.json }, ({ given, json }) =>
    Effect.flatMap(run(given), ({ document, failure, text, warnings = [] }) => {
      const shown = json ? toJson(document) : text
      return (shown === undefined ? Effect.void : print(shown)).pipe(
        Effect.zipRight(Effect.forEach(warnings, warn, { discard: true })),
        Effect.zipRight(failure === undefined ? Effect.void : new CommandFailed({ message: failure }))
      )
    })
  ).pipe(Command.withDescription(description))

export const command = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (given: Command.Command.ParseConfigValue<Config>) => Effect.Effect<Output, E, R>
) => Command.provide(make(name, description, config, run), operator)

/** A command that prints what it has changed. */
export const change = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (given: Command.Command.ParseConfigValue<Config>) => Effect.Effect<{ readonly record: Fields }, E, R>
) => command(name, description, config, (given) => Effect.map(run(given), (changed) => record(changed.record)))

/** The operation with the one argument of that description. */
export const operate = <Name extends string, Reference, Changed extends { readonly record: Fields }, E, R>(
  name: Name,
  { run, summary }: Operation<(reference: Reference) => Effect.Effect<Changed, E, R>>,
  reference: Args.Args<Reference>
) => change(name, `${summary}.`, { reference }, (given) => run(given.reference))

export const findOrganization = (idOrName: string) =>
  Effect.flatMap(Organizations, ({ find }) => find(OrganizationScope.all, idOrName))

/** Reports go on about organizations that were deleted. */
export const findAnyOrganization = (idOrName: string) =>
  Effect.flatMap(Organizations, ({ findAny }) => findAny(OrganizationScope.all, idOrName))

export const filterOf = (idOrName: string | undefined) =>
  idOrName === undefined ? Effect.succeed(undefined) : Effect.map(findAnyOrganization(idOrName), ({ id }) => id)
