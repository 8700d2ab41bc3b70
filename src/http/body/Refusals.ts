import { InvalidRequest } from "../../domain/Failure.ts"

export const refuse = (param: string | null, message: string): InvalidRequest => new InvalidRequest({ message, param })

export const refuseAt = (param: string, path: string, problem: string): InvalidRequest =>
  refuse(param, `\`${path}\` ${problem}.`)
