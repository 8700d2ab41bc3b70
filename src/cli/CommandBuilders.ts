import { type Args, Command } from "@effect/cli"
import { Effect } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { CommandFailed } from "../ExitCode.ts"
import type { Operation } from "../services/admin/AdminOperation.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import { operator } from "./CliServices.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, type Output, print, record, toJson, warn } from "./Output.ts"

/** Prints the document with `--json`, and otherwise the text. */
export const make = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (input: Command.Command.ParseConfigValue<Config>) => Effect.Effect<Output, E, R>
) =>
  Command.make(name, { input: config, json: Inputs.json }, ({ input, json }) =>
    Effect.flatMap(run(input), ({ document, failure, text, warnings = [] }) => {
      const output = json ? toJson(document) : text
      return (output === undefined ? Effect.void : print(output)).pipe(
        Effect.zipRight(Effect.forEach(warnings, warn, { discard: true })),
        Effect.zipRight(failure === undefined ? Effect.void : new CommandFailed({ message: failure }))
      )
    })
  ).pipe(Command.withDescription(description))

export const command = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (input: Command.Command.ParseConfigValue<Config>) => Effect.Effect<Output, E, R>
) => Command.provide(make(name, description, config, run), operator)

/** Makes a command that changes a record and then prints it. */
export const change = <Name extends string, const Config extends Command.Command.Config, E, R>(
  name: Name,
  description: string,
  config: Config,
  run: (input: Command.Command.ParseConfigValue<Config>) => Effect.Effect<{ readonly record: Fields }, E, R>
) => command(name, description, config, (input) => Effect.map(run(input), (result) => record(result.record)))

/** Makes a command for an admin operation whose only input is a reference, such as an id. */
export const operate = <Name extends string, Reference, Changed extends { readonly record: Fields }, E, R>(
  name: Name,
  { run, summary }: Operation<(reference: Reference) => Effect.Effect<Changed, E, R>>,
  reference: Args.Args<Reference>
) => change(name, `${summary}.`, { reference }, (input) => run(input.reference))

export const findOrganization = (idOrName: string) =>
  Effect.flatMap(Organizations, ({ find }) => find(OrganizationScope.all, idOrName))

/** Also finds deleted organizations, because reports include them. */
export const findAnyOrganization = (idOrName: string) =>
  Effect.flatMap(Organizations, ({ findIncludingDeleted }) => findIncludingDeleted(OrganizationScope.all, idOrName))

export const findOrganizationId = (idOrName: string | undefined) =>
  idOrName === undefined ? Effect.succeed(undefined) : Effect.map(findAnyOrganization(idOrName), ({ id }) => id)
