import type { ComponentChildren } from "preact"
import type { SellerRecord } from "../../../services/statements/Seller.ts"
import { Internal } from "../../parts/Values.tsx"

interface Customer {
  readonly id: string
  readonly name: string
}

const SellerLines = ({ address, name, tax_id }: typeof SellerRecord.Encoded) => (
  <>
    <strong>
      <bdi>{name}</bdi>
    </strong>
    {address?.split("\n").map((line) => (
      <bdi key={line}>{line}</bdi>
    ))}
    {tax_id !== undefined && (
      <span>
        Tax id <bdi>{tax_id}</bdi>
      </span>
    )}
  </>
)

/** The seller, the customer and the facts of a statement or receipt. Operators see how to set the seller. */
export const DocumentHead = ({
  children,
  customer,
  seller
}: {
  readonly customer: Customer
  readonly seller: typeof SellerRecord.Encoded | undefined
  /** Facts. */
  readonly children: ComponentChildren
}) => (
  <div class="panel document-head">
    {seller === undefined ? (
      <Internal>
        {() => (
          <div class="soft screen-only">
            <p>
              To show your company here, set <code>SELLER_NAME</code>, <code>SELLER_ADDRESS</code> and{" "}
              <code>SELLER_TAX_ID</code>, and restart the gateway.
            </p>
          </div>
        )}
      </Internal>
    ) : (
      <section aria-label="Seller">
        <h2>Seller</h2>
        <SellerLines {...seller} />
      </section>
    )}
    <section aria-label="Customer">
      <h2>Customer</h2>
      <strong>
        <bdi>{customer.name}</bdi>
      </strong>
      <code>{customer.id}</code>
    </section>
    <dl class="facts">{children}</dl>
  </div>
)
