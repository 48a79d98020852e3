import type { Static, TSchema } from '@sinclair/typebox'
import { address, type Id, type Query } from './address.js'
import { bodyText } from './body-text.js'
import type { CsrfToken } from './csrf-token.js'
import { fileName } from './file-name.js'
import type { Http } from './http.js'
import { responseValue } from './response-value.js'
import { formOf, type Progress, type UploadRequest } from './upload.js'

export interface CallOptions {
  readonly query?: Query
  readonly signal?: AbortSignal
}

export interface UploadOptions extends CallOptions {
  readonly onProgress?: (progress: Progress) => void
  /** The form field's name for a single file. */
  readonly field?: string
}

// The types of calls. `Result` is the response type that the caller expects from the backend; it is not validated.
export type Read = <Result = unknown>(options?: CallOptions) => Promise<Result>
export type ReadOne = <Result = unknown>(id: Id, options?: CallOptions) => Promise<Result>
export type Send<Body> = <Result = unknown>(body: Body, options?: CallOptions) => Promise<Result>
export type SendTo<Body> = <Result = unknown>(id: Id, body: Body, options?: CallOptions) => Promise<Result>
/** Calls with an optional body. */
export type SendMaybe<Body> = <Result = unknown>(body?: Body, options?: CallOptions) => Promise<Result>
export type SendToMaybe<Body> = <Result = unknown>(id: Id, body?: Body, options?: CallOptions) => Promise<Result>
export type Upload = <Result = unknown>(content: Blob | FormData, options?: UploadOptions) => Promise<Result>
export type UploadTo = <Result = unknown>(id: Id, content: Blob | FormData, options?: UploadOptions) => Promise<Result>
/** Resolves to the file of the response. */
export type Download = (options?: CallOptions) => Promise<File>

export type Mutation = 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Creates calls from route declarations. */
export interface Calls {
  read(path: string): Read
  readOne(path: string): ReadOne
  send<Schema extends TSchema>(method: Mutation, path: string, schema: Schema): Send<Static<Schema>>
  sendTo<Schema extends TSchema>(method: Mutation, path: string, schema: Schema): SendTo<Static<Schema>>
  sendMaybe<Schema extends TSchema>(method: Mutation, path: string, schema: Schema): SendMaybe<Static<Schema>>
  sendToMaybe<Schema extends TSchema>(method: Mutation, path: string, schema: Schema): SendToMaybe<Static<Schema>>
  upload(path: string): Upload
  uploadTo(path: string): UploadTo
  download(path: string): Download
}

export interface CallParts {
  /** Prefix of every path; empty for the page's origin. */
  readonly baseUrl: string
  readonly http: Http
  readonly csrf: CsrfToken
  readonly upload: (request: UploadRequest) => Promise<unknown>
}

export const buildCalls = ({ baseUrl, http, csrf, upload: uploadForm }: CallParts): Calls => {
  const url = (path: string, id: Id | undefined, options: CallOptions): string =>
    `${baseUrl}${address(path, id, options.query)}`

  const read = <Result>(path: string, id: Id | undefined, options: CallOptions = {}): Promise<Result> =>
    http({ method: 'GET', url: url(path, id, options), signal: options.signal }, valueIn<Result>)

  const send = async <Result>(
    declared: { readonly method: Mutation; readonly path: string; readonly text: string | null },
    id: Id | undefined,
    options: CallOptions = {}
  ): Promise<Result> => {
    const { method, path, text } = declared
    const request = {
      method,
      url: url(path, id, options),
      signal: options.signal,
      ...(text !== null && { body: text })
    }
    const contentType = text === null ? {} : { 'content-type': 'application/json' }
    return csrf.withToken((token) =>
      http({ ...request, headers: { ...contentType, 'x-csrf-token': token } }, valueIn<Result>)
    )
  }

  const upload = <Result>(
    path: string,
    id: Id | undefined,
    content: Blob | FormData,
    options: UploadOptions = {}
  ): Promise<Result> => {
    const { signal, onProgress, field } = options
    const request = { url: url(path, id, options), form: formOf(content, field), signal, onProgress }
    // The caller declares the response type.
    return csrf.withToken((token) =>
      uploadForm({ ...request, headers: { accept: 'application/json', 'x-csrf-token': token } })
    ) as Promise<Result>
  }

  return {
    read: (path) => (options) => read(path, undefined, options),
    readOne: (path) => (id, options) => read(path, id, options),
    send: (method, path, schema) => async (body, options) =>
      send({ method, path, text: bodyText(schema, body) }, undefined, options),
    sendTo: (method, path, schema) => async (id, body, options) =>
      send({ method, path, text: bodyText(schema, body) }, id, options),
    sendMaybe: (method, path, schema) => async (body, options) =>
      send({ method, path, text: maybeText(schema, body) }, undefined, options),
    sendToMaybe: (method, path, schema) => async (id, body, options) =>
      send({ method, path, text: maybeText(schema, body) }, id, options),
    upload: (path) => async (content, options) => upload(path, undefined, content, options),
    uploadTo: (path) => async (id, content, options) => upload(path, id, content, options),
    download:
      (path) =>
      (options = {}) =>
        http(
          { method: 'GET', url: url(path, undefined, options), signal: options.signal, headers: ANY_TYPE },
          (response) => fileOf(response, path)
        )
  }
}

const ANY_TYPE = { accept: '*/*' }

const maybeText = (schema: TSchema, body: unknown): string | null =>
  body === undefined ? null : bodyText(schema, body)

// The caller declares the response type.
const valueIn = async <Result>(response: Response): Promise<Result> => (await responseValue(response)) as Result

const fileOf = async (response: Response, path: string): Promise<File> => {
  const blob = await response.blob()
  const name = fileName(response.headers.get('content-disposition')) ?? path.slice(path.lastIndexOf('/') + 1)
  return new File([blob], name, { type: blob.type })
}
