// The package has no types. These declare the part that is used.
declare module 'oidc-provider' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  interface Interaction {
    readonly uid: string
    readonly prompt: { readonly name: string }
  }

  export interface Grant {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }

  export interface OidcContext {
    readonly oidc: {
      readonly result?: { readonly consent?: { readonly grantId?: string } }
      readonly session: { readonly accountId: string; grantIdFor(clientId: string): string | undefined }
      readonly client: { readonly clientId: string }
      readonly provider: Provider
    }
  }

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    readonly Grant: {
      new (content: { readonly clientId: string; readonly accountId: string }): Grant
      find(id: string): Promise<Grant | undefined>
    }
    callback(): RequestListener
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: unknown): Promise<void>
    on(event: string, listener: (...facts: unknown[]) => void): this
  }
}
