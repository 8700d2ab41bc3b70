import { chmodSync, mkdirSync, renameSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"
import path from "node:path"
import { Effect } from "effect"
import { EmbeddedUnavailable } from "./EmbeddedUnavailable.ts"
import type { Runner } from "./Runner.ts"

const write = (file: string, text: string) => {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o644 })
  chmodSync(draft, 0o644)
  renameSync(draft, file)
}

/**
 * Server settings that let in nobody but the caller's own account, which the kernel vouches for. They matter where
 * the server runs as an account that other programs run as, too; elsewhere the socket's directory keeps others out.
 * The files are beside the server's own, which that account could change.
 */
export const settings = (dataDir: string, user: string, { uid }: Runner) =>
  Effect.try({
    try: (): Readonly<Record<string, string>> => {
      if (uid === undefined) return {}
      const directory = path.resolve(dataDir, "postgres-access")
      mkdirSync(directory, { recursive: true })
      chmodSync(directory, 0o755)
      const [hba, ident] = [path.join(directory, "pg_hba.conf"), path.join(directory, "pg_ident.conf")]
      write(ident, `gateway "${userInfo().username}" ${user}\n`)
      write(hba, "local all all peer map=gateway\n")
      return { hba_file: hba, ident_file: ident }
    },
    catch: (error) => EmbeddedUnavailable.because(`access to it cannot be restricted (${String(error)})`)
  })
