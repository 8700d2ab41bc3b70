import { Stream } from "effect"
import { csvLines, pagesOf, type RequestFilter } from "../../services/admin/requests/Pages.ts"
import { logRecord } from "../../services/admin/requests/Record.ts"
import * as Output from "../Output.ts"

export const exportCsv = (filter: RequestFilter, limit: number) =>
  Stream.runForEach(csvLines(filter, limit), (lines) => Output.print(lines.join("\n")))

export const exportJson = (filter: RequestFilter, limit: number) =>
  Stream.concat(
    Stream.succeed('{"data":['),
    pagesOf(filter, limit).pipe(
      Stream.zipWithIndex,
      Stream.map(([rows, index]) => {
        const lines = rows.map((row) => Output.toJson(logRecord(row), 0)).join(",\n")
        return index === 0 ? lines : `,${lines}`
      })
    )
  ).pipe(Stream.concat(Stream.succeed("]}")), Stream.runForEach(Output.print))
