// Fictional names for the demo data. After a colon: the attributes of the entry.

const names = (text: string): readonly string[] => text.split(',').map((name) => name.trim())

export const FIRST_NAMES = names(`
  Ada, Amina, Anton, Bea, Boris, Carla, Chen, Daria, Dimitri, Elif, Emil, Farid, Fatou, Greta, Hana, Henrik,
  Ines, Ivan, Jana, Jonas, Kaito, Klara, Lena, Luca, Mara, Milan, Nadia, Nils, Olga, Oskar, Paula, Pavel,
  Quynh, Rania, Ruben, Sara, Simon, Tamar, Theo, Uma, Victor, Wanda, Xenia, Yusuf, Zoe, Zoltan`)

export const LAST_NAMES = names(`
  Abel, Adler, Baker, Bauer, Castro, Costa, Demir, Dubois, Eriksen, Ferrari, Fischer, Garcia, Gruber,
  Hansen, Horvat, Ibrahim, Ito, Jansen, Jovic, Kaya, Keller, Kim, Larsen, Lopez, Maier, Moreau, Nguyen,
  Novak, Okafor, Olsen, Papas, Petrov, Quist, Rossi, Roth, Santos, Sato, Silva, Toth, Urban, Vogel, Weber,
  Yilmaz, Zhang`)

export const DEPARTMENTS = names(`
  Administration:ADM:#5e35b1, Operations:OPS:#1565c0, Research:RES:#00838f, Production:PRO:#ef6c00, Quality:QUA:#2e7d32,
  Facilities:FAC:#6d4c41, Security:SEC:#c62828, Information Technology:ICT:#37474f`)

export const JOB_TITLES = names(`
  Analyst, Assistant, Coordinator, Designer, Developer, Engineer, Laboratory Technician,
  Logistics Specialist, Machinist, Manager, Officer, Planner, Researcher, Supervisor, Technician`)

/** The companies of visitors and contractors. */
export const COMPANIES = names(`
  Alder Consulting, Brightline Media, Corvus Audit, Delta Instruments, Fjord Partners, Halden Elevators, Ironwood Scaffolding,
  Juniper Cleaning, Keystone Electric, Larkspur Catering`)

export const ASSET_KINDS = names(`
  Pallet truck:transport, Tool trolley:transport, Oscilloscope:instrument, Microscope:instrument, Projector:equipment,
  Air sampler:instrument, Defibrillator:safety, Laptop cart:equipment, Gas cylinder:material, Welding set:tool`)

export const ZONE_KINDS = names(`
  corridor:#eceff1, stairs:#cfd8dc, office:#e3f2fd, laboratory:#ede7f6, meeting:#fff3e0, common:#e8f5e9,
  restricted:#ffebee, muster:#c8e6c9`)

export const DEVICE_KINDS = names(`
  phone:Pear Devices, phone:Northern Mobile, headset:Soundwell, watch:Tickwise, laptop:Slate Computers, tracker`)

const TOWN = { city: 'Berlin', country: 'Germany', timezone: 'Europe/Berlin' }

/** The addresses of the buildings. */
export const ADDRESSES = [
  { ...TOWN, address: '1 Northgate Road', latitude: 52.5201, longitude: 13.405 },
  { ...TOWN, address: '3 Northgate Road', latitude: 52.5207, longitude: 13.4063 },
  { ...TOWN, address: '8 Foundry Lane', latitude: 52.5196, longitude: 13.4071 }
]

export const CONTACTS = [
  { name: 'Fire brigade', role: 'Fire and rescue', phone: '112' },
  { name: 'Site security', role: 'Gate and patrols', phone: '+49 30 555 0600', notifyBySms: true },
  { name: 'Works doctor', role: 'First aid', phone: '+49 30 555 0611' },
  { name: 'Facilities on call', role: 'Power, water, doors', mobile: '+49 170 555 0500' }
]
