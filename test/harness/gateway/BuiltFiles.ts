import { readFileSync } from "node:fs"
import path from "node:path"
import { Schema } from "effect"
import { program } from "./GatewayProcess.ts"

const decode = Schema.decodeUnknownSync(Schema.parseJson(Schema.Struct({ files: Schema.Array(Schema.String) })))

/** What the built program consists of; files of earlier builds lie beside them. */
export const builtFiles = (extension: string): ReadonlyArray<string> => {
  const directory = path.dirname(program)
  const { files } = decode(readFileSync(path.join(directory, "gateway/build.json"), "utf8"))
  return files
    .filter((file) => file.startsWith("gateway/") && file.endsWith(extension))
    .map((file) => path.join(directory, file))
}
