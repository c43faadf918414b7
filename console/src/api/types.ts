// Short names for the schemas of the admin API, which are generated from its OpenAPI document.

import type { components } from "./schema.d.ts";

type Schemas = components["schemas"];

export type Binding = Schemas["ListedBinding"];
export type Calls = Schemas["Calls"];
export type Configuration = Schemas["Configuration"];
export type Connection = Schemas["Connection"];
export type Consumer = Schemas["Consumer"];
export type Exchange = Schemas["Exchange"];
export type Gateway = Schemas["Gateway"];
export type LinkedSession = Schemas["LinkedSession"];
export type Listener = Schemas["Listener"];
export type Message = Schemas["Message"];
export type Messages = Schemas["Messages"];
export type Moved = Schemas["Moved"];
export type Overview = Schemas["Overview"];
export type Policy = Schemas["Policy"];
export type Problem = Schemas["Problem"];
export type Queue = Schemas["Queue"];
export type Session = Schemas["Session"];
export type Stall = Schemas["Stall"];
export type Stream = Schemas["Stream"];
export type StreamMessage = Schemas["StreamMessage"];
export type Trace = Schemas["Trace"];
export type User = Schemas["User"];
export type Vhost = Schemas["Vhost"];
export type Whoami = Schemas["Whoami"];
