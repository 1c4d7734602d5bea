/** Tenants, people who sign in, keys and tokens. */
import * as Layer from "effect/Layer"
import { IdempotencyKeyStore } from "../../store/IdempotencyKeys.ts"
import { AccessTokenStore } from "../../store/accounts/AccessTokens.ts"
import { ApiKeyStore } from "../../store/accounts/ApiKeys.ts"
import { EmailDeliveryStore } from "../../store/accounts/EmailDeliveries.ts"
import { ExpiredRows } from "../../store/accounts/ExpiredRows.ts"
import { ManageAnswerStore } from "../../store/accounts/ManageAnswers.ts"
import { OutgoingMailStore } from "../../store/accounts/OutgoingMails.ts"
import { PasskeyStore } from "../../store/accounts/Passkeys.ts"
import { RetentionStore } from "../../store/accounts/Retention.ts"
import { ScimStore } from "../../store/accounts/Scim.ts"
import { ScimTokenStore } from "../../store/accounts/ScimTokens.ts"
import { SessionStore } from "../../store/accounts/Sessions.ts"
import { SingleSignOnStore } from "../../store/accounts/SingleSignOn.ts"
import { TeamStore } from "../../store/accounts/Team.ts"
import { TenantStore } from "../../store/accounts/Tenants.ts"
import { UserStore } from "../../store/accounts/Users.ts"
import { AccessTokens } from "../../usecases/accounts/AccessTokens.ts"
import { Accounts } from "../../usecases/accounts/Accounts.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { EmailDeliveries } from "../../usecases/accounts/EmailDeliveries.ts"
import { Keys } from "../../usecases/accounts/Keys.ts"
import { OpenSessions } from "../../usecases/accounts/OpenSessions.ts"
import { Passkeys } from "../../usecases/accounts/Passkeys.ts"
import { RepeatedRequests } from "../../usecases/accounts/RepeatedRequests.ts"
import { RetentionLimits } from "../../usecases/accounts/Retention.ts"
import { Scim } from "../../usecases/accounts/Scim.ts"
import { ScimAccess } from "../../usecases/accounts/ScimAccess.ts"
import { SignOn } from "../../usecases/accounts/SignOn.ts"
import { SingleSignOn } from "../../usecases/accounts/SingleSignOn.ts"
import { Team } from "../../usecases/accounts/Team.ts"

export const stores = Layer.mergeAll(
  AccessTokenStore.Default,
  ApiKeyStore.Default,
  EmailDeliveryStore.Default,
  ExpiredRows.Default,
  IdempotencyKeyStore.Default,
  ManageAnswerStore.Default,
  OutgoingMailStore.Default,
  PasskeyStore.Default,
  RetentionStore.Default,
  ScimStore.Default,
  ScimTokenStore.Default,
  SessionStore.Default,
  SingleSignOnStore.Default,
  TeamStore.Default,
  TenantStore.Default,
  UserStore.Default
)

export const layer = Layer.mergeAll(
  AccessTokens.Default,
  Accounts.Default,
  AuditTrail.Default,
  EmailDeliveries.Default,
  Keys.Default,
  OpenSessions.Default,
  Passkeys.Default,
  RepeatedRequests.Default,
  RetentionLimits.Default,
  Scim.Default,
  ScimAccess.Default,
  SignOn.Default.pipe(Layer.provide(AuditTrail.Default)),
  SingleSignOn.Default,
  Team.Default
)
