import type { NowRecord } from "../../../services/admin/now/Record.ts"

export type NowAnswer = typeof NowRecord.Encoded
export type Figures = NowAnswer["today"]
export type Circuit = NowAnswer["circuits"][number]
export type Attention = NowAnswer["attention"][number]
