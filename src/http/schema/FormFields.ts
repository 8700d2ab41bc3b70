import { Option, Record, Schema, SchemaAST } from "effect"
import type { JsonObject } from "../body/Guards.ts"
import { formObject, type Part } from "../body/Multipart.ts"

type Fields = Schema.Struct.Fields

const formId = Symbol.for("gateway/http/form")
const constantId = Symbol.for("gateway/http/formConstant")

const empty = Schema.Literal("")

/** In a form every value is a text, and an empty text means left out. */
export const orEmpty = <A, I>(text: Schema.Schema<A, I>) => Schema.Union(text, empty)

/** Describes the same field of a form, whose values are texts. */
export const inForm =
  (text: Schema.Schema.Any) =>
  <S extends Schema.Schema.All>(field: Schema.optional<S>): Schema.optional<S> =>
    field.annotations({ [formId]: text })

/** A form has no use for the field: only its empty text is taken. */
export const emptyInForm = inForm(empty)

/** A form writes the field's only value as its text. */
export const constantInForm =
  (value: number | boolean) =>
  <S extends Schema.Schema.All>(field: Schema.optional<S>): Schema.optional<S> =>
    field.annotations({ [formId]: Schema.Literal(String(value), ""), [constantId]: value })

const annotation = (id: symbol, field: Fields[string]): Option.Option<unknown> =>
  Schema.isPropertySignature(field) && field.ast._tag === "PropertySignatureDeclaration"
    ? Option.fromNullable(field.ast.annotations[id])
    : Option.none()

/** A field that says nothing of forms is the same in both. */
const formField = (field: Fields[string]): Fields[string] =>
  annotation(formId, field).pipe(
    Option.filter(Schema.isSchema),
    Option.match({
      onNone: () => field,
      onSome: (text) =>
        Schema.optional(text).annotations({
          description: String(Option.getOrThrow(annotation(SchemaAST.DescriptionAnnotationId, field)))
        })
    })
  )

/** Describes the form with the fields of a JSON body; `files` are those that forms send in another way. */
export const formOf = (json: Fields, files: Fields) => Schema.Struct({ ...Record.map(json, formField), ...files })

/** The JSON body that a form stands for. */
export const jsonOf = (json: Fields, parts: ReadonlyArray<Part>): JsonObject => {
  const body = formObject(parts)
  const constants = Record.filterMap(json, (field, name) =>
    Option.filter(annotation(constantId, field), (value) => String(value) === body[name])
  )
  return { ...body, ...constants }
}
