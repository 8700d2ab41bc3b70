import type { Payment, ShownPayment } from "../../../services/payments/Payment.ts"

/** Amounts in USD, moments in Unix seconds; members get no field that is internal. */
export type PaymentRecord = typeof Payment.Encoded
export type PaymentDetail = typeof ShownPayment.Encoded
