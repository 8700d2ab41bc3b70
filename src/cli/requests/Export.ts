import { Stream } from "effect"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { csvLines, logRecords, pagesOf, type RequestFilter } from "../../services/admin/requests/Pages.ts"
import * as Output from "../Output.ts"

export const exportCsv = (filter: RequestFilter, limit: number) =>
  Stream.runForEach(csvLines(OrganizationScope.all, filter, { limit }), (lines) => Output.print(lines.join("\n")))

export const exportJson = (filter: RequestFilter, limit: number) =>
  Stream.concat(
    Stream.succeed('{"data":['),
    pagesOf(OrganizationScope.all, filter, limit).pipe(
      Stream.mapEffect(logRecords),
      Stream.zipWithIndex,
      Stream.map(([records, index]) => {
        const lines = records.map((record) => Output.toJson(record, 0)).join(",\n")
        return index === 0 ? lines : `,${lines}`
      })
    )
  ).pipe(Stream.concat(Stream.succeed("]}")), Stream.runForEach(Output.print))
