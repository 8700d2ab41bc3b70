import { SchemaAST as AST, identity, Option, Predicate, Schema } from "effect"
import { toUsd } from "../../domain/Money.ts"

const nanoPerUsd = 1e9

/** The annotation with a value's schema in database rows, if that differs from the type of the record. */
const rowForm = Symbol.for("gateway/resources/rowForm")

/** Nano-USD, encoded as a JSON number of USD. */
export const Usd = Schema.transform(Schema.Number, Schema.BigIntFromSelf, {
  strict: true,
  decode: (usd) => BigInt(Math.round(usd * nanoPerUsd)),
  encode: toUsd
}).annotations({ [rowForm]: Schema.BigInt })

/** A date, encoded as Unix seconds. */
export const UnixSeconds = Schema.transform(Schema.Number, Schema.DateFromSelf, {
  strict: true,
  decode: (seconds) => new Date(seconds * 1000),
  encode: (date) => Math.floor(date.getTime() / 1000)
})

export const TextOrNull = Schema.NullOr(Schema.String)
export const TimeOrNull = Schema.NullOr(UnixSeconds)

const nullAsAbsent = ({ name }: AST.PropertySignature) =>
  new AST.PropertySignatureTransformation(name, name, Option.filter(Predicate.isNotNull), identity)

const toRow = (ast: AST.AST): AST.AST => {
  const form = ast.annotations[rowForm]
  if (Schema.isSchema(form)) return form.ast
  if (AST.isUnion(ast)) return AST.Union.make(ast.types.map(toRow))
  if (!AST.isTypeLiteral(ast)) return AST.typeAST(ast)
  const columns = ast.propertySignatures.map(
    ({ isOptional, isReadonly, name, type }) =>
      new AST.PropertySignature(
        name,
        isOptional ? AST.Union.make([toRow(type), AST.null]) : toRow(type),
        isOptional,
        isReadonly
      )
  )
  const row = new AST.TypeLiteral(columns, [])
  const optional = ast.propertySignatures.filter(({ isOptional }) => isOptional)
  return optional.length === 0
    ? row
    : new AST.Transformation(row, AST.typeAST(ast), new AST.TypeLiteralTransformation(optional.map(nullAsAbsent)))
}

/**
 * Returns the schema of database rows whose columns are named as the record's fields. Amounts are text, times are dates,
 * absent fields are null.
 */
export const rowSchema = <A, I>(record: Schema.Schema<A, I>): Schema.Schema<A, unknown> =>
  Schema.make<A, unknown>(toRow(record.ast))
