import { useEffect, useRef, useState } from "preact/hooks"
import type { ApiError } from "../../api/ApiError.ts"
import { readLines } from "../../api/Client.ts"
import { asApiError, useResource } from "../../api/useResource.ts"
import { formatCount } from "../../format/Amount.ts"
import { formatMillis } from "../../format/Moment.ts"
import { Badge } from "../../parts/Badge.tsx"
import { ErrorBox } from "../../parts/ErrorBox.tsx"
import { Section } from "../../parts/Page.tsx"
import { Table } from "../../parts/Table.tsx"
import { Time } from "../../parts/Time.tsx"
import { Values } from "../audit/Values.tsx"

interface Proof {
  readonly invariant: string
  /** The first of those that break it. */
  readonly violations: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly count: number
  readonly ms: number
}

interface End {
  readonly done: true
  readonly holds_true: boolean
  readonly organizations: number
  readonly entries: number
  readonly holds: number
  readonly at: number
}

type Run =
  | { readonly is: "running" | "cut off"; readonly proofs: ReadonlyArray<Proof> }
  | { readonly is: "failed"; readonly proofs: ReadonlyArray<Proof>; readonly error: ApiError }
  | { readonly is: "over"; readonly proofs: ReadonlyArray<Proof>; readonly end: End }

const useRun = () => {
  const [run, setRun] = useState<Run>()
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const start = async () => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const proofs: Array<Proof> = []
    let end: End | undefined
    setRun({ is: "running", proofs: [] })
    try {
      await readLines<Proof | End>(
        "/ledger/verify",
        (line) => {
          if ("done" in line) end = line
          else setRun({ is: "running", proofs: [...proofs, ...(proofs.push(line), [])] })
        },
        signal
      )
    } catch (error) {
      if (!signal.aborted) setRun({ is: "failed", proofs, error: asApiError(error) })
      return
    }
    setRun(end === undefined ? { is: "cut off", proofs } : { is: "over", proofs, end })
  }
  const stop = () => {
    controller.current?.abort()
    setRun(undefined)
  }
  return [run, start, stop] as const
}
