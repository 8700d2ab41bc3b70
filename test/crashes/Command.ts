import { spawn } from "node:child_process"
import { Effect } from "effect"
import { Deployment } from "../harness/gateway/Deployment.ts"
import { program } from "../harness/gateway/GatewayProcess.ts"

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the built program's command beside the gateways of a deployment. */
export const gateway = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(Deployment, ({ directory, env }) =>
    Effect.async<Finished>((resume) => {
      const child = spawn(process.execPath, [program, ...args], {
        cwd: directory,
        env: { PATH: process.env["PATH"], HOME: process.env["HOME"], ...env },
        stdio: ["ignore", "pipe", "pipe"]
      })
      let stdout = ""
      let stderr = ""
      child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text))
      child.on("close", (code) => resume(Effect.succeed({ code, stdout, stderr })))
      return Effect.sync(() => child.kill("SIGKILL"))
    })
  )
