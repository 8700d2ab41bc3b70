import { Context, Layer, Schema } from "effect"
import { currency, type Seller } from "../../domain/Documents.ts"

export const SellerRecord = Schema.Struct({
  name: Schema.String,
  address: Schema.optionalWith(Schema.String, { exact: true }).annotations({
    description: "The lines of the address, separated by line breaks."
  }),
  tax_id: Schema.optionalWith(Schema.String, { exact: true })
}).annotations({ identifier: "Seller" })

/** The fields that statements and receipts have in common. */
export const documentFields = {
  seller: Schema.optionalWith(SellerRecord, { exact: true }).annotations({
    description: "The company that sells. Absent if the operator has not set it."
  }),
  currency: Schema.Literal(currency).annotations({ description: "The currency of all amounts." })
}

/** The company that statements and receipts name as the seller. Undefined unless the operator has set it. */
export class DocumentSeller extends Context.Reference<DocumentSeller>()("gateway/DocumentSeller", {
  defaultValue: (): { readonly seller: Seller | undefined } => ({ seller: undefined })
}) {
  static readonly layer = (seller: Seller | undefined) => Layer.succeed(DocumentSeller, { seller })
}

/** Returns the common fields of a document. */
export const documentFieldsOf = ({ seller }: DocumentSeller["Type"]) => ({
  ...(seller !== undefined && { seller }),
  currency
})
